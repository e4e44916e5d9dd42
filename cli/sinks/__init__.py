"""Where rows go: tables, files that grow, parts of files, and the lock of an output."""
