"""What tests share: made folders, pretended devices, tiny architectures."""
