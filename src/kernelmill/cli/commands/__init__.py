"""The commands, one module each. A module has the click command under the name `command`."""
