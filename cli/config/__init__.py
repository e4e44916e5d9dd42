"""Settings: gscope.yaml, command line, quantities, interfaces and devices."""
