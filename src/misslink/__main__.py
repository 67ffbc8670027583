"""Run the command line with ``python -m misslink``."""

from misslink.cli.main import main

if __name__ == "__main__":
    main()
