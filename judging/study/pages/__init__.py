"""What a participant sees and answers, page by page."""
