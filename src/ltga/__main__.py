"""``python -m ltga``: the same as ``ltga``."""

from ltga.cli import main

if __name__ == "__main__":
    main()
