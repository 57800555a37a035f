import sys

from askance.cli import main

if __name__ == "__main__":
    sys.exit(main())
