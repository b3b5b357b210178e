"""``python -m reclock`` is the command ``reclock``."""

from reclock.cli.main import main

if __name__ == "__main__":
    main()
