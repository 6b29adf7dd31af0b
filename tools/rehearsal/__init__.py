"""Run the generated notebooks as Colab would: its packages, an empty folder, the set-up cell first.

runtimes    which packages a runtime holds, and the interpreter for it
folders     the environments: one for each runtime, and on top of it a fresh one for each notebook
remote      the working tree as the git repository that the set-up cell installs from
answers     notebooks for students, with the book's answers filled in
running     one notebook from top to bottom, and what in its outputs is at fault
selection   which notebooks changed
"""
