"""Is the human human? How many of participants' answers somebody else wrote, and scores corrected for it."""
