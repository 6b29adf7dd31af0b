"""The classroom: checks that judge a reader's code, worksheets, courses and grading."""
