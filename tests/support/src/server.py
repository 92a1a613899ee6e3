# A webhook or a registry for a test, in a node's own network namespace: 127.0.0.1 there is the API
# server's and the kubelet's. Prints its port, and ends when its stdin does.
# stdin begins with a line of JSON: a certificate with its key, and a webhook's denials. What is asked
# for by POST is an AdmissionReview, what by GET an image's manifest; the path says what is answered.
import http.server, json, os, ssl, sys, tempfile, threading, time

class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, code, body, headers=()):
        self.send_response(code)
        for name, value in (("Content-Type", "application/json"), ("Content-Length", str(len(body))), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):  # an AdmissionReview
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
        if self.path.startswith("/slow"):
            time.sleep(30)
        said = DENIALS.get(self.path.split("?")[0])
        review = {"uid": request["uid"], "allowed": False, **({"status": said} if said else {})}
        self.answer(200, json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": review}).encode())

    def do_GET(self):  # a registry's manifest
        if self.path.startswith("/v2/silent/"):
            time.sleep(60)
        elif self.path.startswith("/v2/secret/") or self.path == "/v2/":
            body = json.dumps({"errors": [{"code": "UNAUTHORIZED", "message": "authentication required"}]}).encode()
            self.answer(401, body, [("WWW-Authenticate", 'Basic realm="test"')])
        else:
            self.answer(404, json.dumps({"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}).encode())

    do_HEAD = do_GET

    def log_message(self, *args):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
server.daemon_threads = True
given = json.loads(sys.stdin.readline())
DENIALS = given["denials"]
with tempfile.NamedTemporaryFile("w") as pem:
    pem.write(given["pem"])
    pem.flush()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem.name)
server.socket = context.wrap_socket(server.socket, server_side=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
os._exit(0)
