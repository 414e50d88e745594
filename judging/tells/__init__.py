"""Transformations of answers that take a tell away, or plant participants' form of it, with a check of each."""
