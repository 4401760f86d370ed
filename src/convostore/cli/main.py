"""The command `convostore`: starts the application, or says what to install."""

from __future__ import annotations

import sys

__all__ = ["run"]


def run() -> None:
    """Run the command line; exits with the codes that `convostore --help` lists."""
    try:
        import rich  # noqa: F401  typer alone does without, this command line does not
        import typer  # noqa: F401
    except ModuleNotFoundError as error:
        sys.exit(f"the command line needs {error.name}; install it with: pip install 'convostore[cli]'")
    from convostore.cli.application import app

    app()


if __name__ == "__main__":
    run()
