"""The papers' own tests and figures, beside which scores are set."""
