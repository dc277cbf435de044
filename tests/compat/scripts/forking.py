"""Runs the scripts beside it, each in its own forked process, so that a client is imported only once.

`forking.py {socket} {client}` listens on a socket. A client sends a line of JSON with a script's path and arguments,
and reads the script's output, including a traceback, until the connection closes.
"""

import importlib
import json
import os
import runpy
import socketserver
import sys


class Script(socketserver.StreamRequestHandler):
    def handle(self):
        sys.argv = json.loads(self.rfile.readline())
        for stream in (1, 2):
            os.dup2(self.request.fileno(), stream)
        runpy.run_path(sys.argv[0], run_name="__main__")
        sys.stdout.flush()


class Scripts(socketserver.ForkingMixIn, socketserver.UnixStreamServer):
    def handle_error(self, request, client_address):
        sys.excepthook(*sys.exc_info())


importlib.import_module(sys.argv[2])
with Scripts(sys.argv[1], Script) as scripts:
    print("ready", flush=True)
    scripts.serve_forever()
