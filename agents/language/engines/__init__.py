"""What runs a language model: transformers, vLLM, or a server with OpenAI's interface."""
