"""``python -m gscope`` is the ``gscope`` command."""

from gscope.cli.main import main

if __name__ == "__main__":
    main()
