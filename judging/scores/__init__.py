"""Verdicts become scores, figures and a page."""
