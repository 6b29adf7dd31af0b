"""Turn a chapter (a MyST text notebook) into a notebook that reads well where MyST is unknown, such as Colab.

markup      reading MyST by token: blocks, directives with their options, and where inline elements stand
catalogue   what chapters refer to: labels, numbers, titles, references of the bibliography
inline      roles, links and images -> Markdown
blocks      directives and equations -> Markdown
cells       the sequence of cells, with gated solutions folded into one
setup_cell  the code that installs the package in Colab
frame       the cells that every notebook begins with, and its metadata
assignments a chapter with marked answers, and with stubs in their place
leftovers   a last look: nothing of MyST may remain
"""

from chapter_export.assignments import export_assignment
from chapter_export.frame import export_chapter
from chapter_export.markup import ExportError

__all__ = ["ExportError", "export_assignment", "export_chapter"]
