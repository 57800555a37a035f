"""What the numbers of a table say, and how surely: numpy and scipy alone, no pictures."""
