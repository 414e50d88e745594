"""A whole project in one file: ``turinglike.toml``, which ``turinglike run`` carries out."""
