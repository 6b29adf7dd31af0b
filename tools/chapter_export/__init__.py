"""Turn a chapter (a MyST text notebook) into a notebook that reads well where MyST is unknown, such as Colab.

markup      reading MyST by token: blocks, directives, inline elements; what is left of it in a notebook
catalogue   what chapters refer to: labels, numbers, titles, references of the bibliography
inline      roles, links and images -> Markdown
blocks      directives and equations -> Markdown
cells       the sequence of cells, with gated solutions folded into one, behind those that all notebooks share
setup_cell  the code that installs the package in Colab
assignments a chapter with marked answers, and with stubs in their place
"""

from chapter_export.assignments import export_assignment
from chapter_export.cells import export_chapter
from chapter_export.markup import ExportError

__all__ = ["ExportError", "export_assignment", "export_chapter"]
