"""The command line ``pleach``: the same code as the program."""

import sys


def main() -> None:
    """Runs the command line and exits with its code."""
    from pleach._pleach import command_line

    sys.exit(command_line(["pleach", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
