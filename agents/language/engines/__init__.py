"""Engines that generate texts: transformers, vLLM, and clients of servers."""
