# Grades what was handed in where the system itself does not set a student's code apart, as on macOS and Windows.
# How to call it stands on the page for instructors.
FROM python:3.12-slim
WORKDIR /opt/book
COPY pyproject.toml requirements.lock README.md LICENSE THIRD_PARTY.md ./
COPY vit_from_scratch vit_from_scratch
COPY vit_lab vit_lab
COPY vit_classroom vit_classroom
RUN pip install --no-cache-dir --constraint requirements.lock --extra-index-url https://download.pytorch.org/whl/cpu . timm
ENV HOME=/tmp
USER 65534:65534
WORKDIR /work
ENTRYPOINT ["vit", "assignment"]
