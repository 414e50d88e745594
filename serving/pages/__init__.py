"""What pages share: rendering, thumbnails, styles, scripts."""
