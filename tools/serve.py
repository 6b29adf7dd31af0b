"""Serve the built book on this machine: `make serve`."""

import argparse
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from check_book import BUILT

PORT = 8000


class Files(SimpleHTTPRequestHandler):
    """Files of a folder; a browser asks anew for each, and gets it if it has changed."""

    protocol_version = "HTTP/1.1"

    def end_headers(self) -> None:
        """Say that nothing is to be kept unasked."""
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing for each request."""


@contextmanager
def served(folder: Path, port: int = 0) -> Iterator[str]:
    """Serve `folder` at a free port or a given one, for this machine alone; give the address."""
    if not 0 <= port <= 65535:
        raise OSError("ports go from 0 to 65535")
    with ThreadingHTTPServer(("127.0.0.1", port), partial(Files, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", nargs="?", type=Path, default=BUILT, help="the folder of the built book")
    options.add_argument("--port", type=int, default=PORT, help=f"the port to listen at (default: {PORT})")
    chosen = options.parse_args(arguments)
    folder = chosen.folder.resolve()
    if not (folder / "index.html").exists():
        print(f"error: there is no book in {folder}; run `make book` first.", file=sys.stderr)
        return 1
    try:
        with suppress(KeyboardInterrupt), served(folder, chosen.port) as address:
            print(f"The book is at {address} (Ctrl+C stops it)", flush=True)
            threading.Event().wait()
    except OSError as error:
        print(f"error: port {chosen.port} cannot be used ({error}); try PORT=8001", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
