"""What a study is to do: ``study.toml``, read and written."""
