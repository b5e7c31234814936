from fixtures.command_line import ltga  # noqa: F401
