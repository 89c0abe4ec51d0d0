"""A server that ranks with a real model, for the tests: the shapes and the refusals of the servers that people have.

    POST /v1/rerank, /v2/rerank   Cohere; scores are the cosine moved to 0..1. The second is strict, as Cohere's is
    POST /rerank, GET /info       Text Embeddings Inference; scores are the cosine as it is, at most 32 texts
    POST /v1/embeddings           OpenAI
    GET  /healthz

tests/model/run installs and starts it. By hand, with the packages of requirements.txt: `python tests/model/serve.py --port 9000`.
"""

import argparse
import base64
import json
import sys
import traceback
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from encoder import MAX_TOKENS, NAME, WIDTH, Encoder

MAX_BODY_BYTES = 16 * 1024 * 1024
# The default of Text Embeddings Inference, and what OpenAI's and Cohere's documentation say.
MAX_TEI_TEXTS = 32
MAX_EMBEDDING_INPUTS = 2_048
MAX_COHERE_DOCUMENTS = 10_000


class Refusal(Exception):
    """An answer that is none: a document, or plain text."""

    def __init__(self, status, body):
        self.status, self.body = status, body


def is_text(value):
    return isinstance(value, str) and value.strip() != ""


def is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def ranked(scores):
    """Places, the best first; equal ones as they came."""
    return sorted(range(len(scores)), key=lambda place: -scores[place])


class Cohere:
    """`strict` is version 2: the model has to be named, documents are texts, no field is unknown."""

    FIELDS = {"model", "query", "documents", "top_n", "max_tokens_per_doc", "priority"}

    def __init__(self, encoder, strict):
        self.encoder, self.strict = encoder, strict

    @staticmethod
    def refuse(status, message):
        return Refusal(status, {"id": str(uuid.uuid4()), "message": message})

    def answer(self, request):
        if self.strict:
            for field in request.keys() - self.FIELDS:
                raise self.refuse(422, f"unknown field: parameter '{field}' is not a valid field")
            if not is_text(request.get("model")):
                raise self.refuse(400, "invalid request: model is required")
        if not is_text(request.get("query")):
            raise self.refuse(400, "invalid request: query is required")
        documents = request.get("documents")
        if not isinstance(documents, list) or not documents:
            raise self.refuse(400, "invalid request: list of documents must not be empty")
        if len(documents) > MAX_COHERE_DOCUMENTS:
            raise self.refuse(400, f"too many documents: {len(documents)}, at most {MAX_COHERE_DOCUMENTS}")
        texts = [self.text(place, document) for place, document in enumerate(documents)]
        top = request.get("top_n", len(texts))
        if not is_count(top):
            raise self.refuse(400, "invalid request: top_n must be a positive integer")
        scores = [(1 + cosine) / 2 for cosine in self.encoder.cosines(request["query"], texts)]
        results = [{"index": place, "relevance_score": scores[place]} for place in ranked(scores)[:top]]
        if not self.strict and request.get("return_documents") is True:
            for result in results:
                result["document"] = {"text": texts[result["index"]]}
        meta = {"api_version": {"version": "2" if self.strict else "1"}, "billed_units": {"search_units": 1}}
        return {"id": str(uuid.uuid4()), "results": results, "meta": meta}

    def text(self, place, document):
        if isinstance(document, dict) and not self.strict:
            document = document.get("text")
        if not is_text(document):
            raise self.refuse(400, f"invalid request: document at index {place} must be a text that is not blank")
        return document


class Tei:
    def __init__(self, encoder):
        self.encoder = encoder

    @staticmethod
    def refuse(status, message):
        """What its web framework says before the server itself has a look: plain text."""
        return Refusal(status, message)

    def answer(self, request):
        for field, kind, name in (("query", str, "string"), ("texts", list, "sequence")):
            if field not in request:
                raise self.refuse(422, self.misfit(f"missing field `{field}`"))
            if not isinstance(request[field], kind):
                raise self.refuse(422, self.misfit(f"{field}: invalid type, expected a {name}"))
        texts = request["texts"]
        if not all(isinstance(text, str) for text in texts):
            raise self.refuse(422, self.misfit("texts: invalid type, expected a string"))
        if not texts:
            raise Refusal(400, {"error": "`texts` cannot be empty", "error_type": "Empty"})
        if len(texts) > MAX_TEI_TEXTS:
            message = f"batch size {len(texts)} > maximum allowed batch size {MAX_TEI_TEXTS}"
            raise Refusal(422, {"error": message, "error_type": "Validation"})
        scores = self.encoder.cosines(request["query"], texts)
        results = [{"index": place, "score": scores[place]} for place in ranked(scores)]
        if request.get("return_text") is True:
            for result in results:
                result["text"] = texts[result["index"]]
        return results

    @staticmethod
    def misfit(reason):
        return f"Failed to deserialize the JSON body into the target type: {reason}"

    @staticmethod
    def info():
        return {
            "model_id": NAME,
            "model_dtype": "int8",
            "model_type": {"reranker": {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}},
            "max_concurrent_requests": 512,
            "max_input_length": MAX_TOKENS,
            "max_client_batch_size": MAX_TEI_TEXTS,
            "auto_truncate": True,
        }


class Embeddings:
    def __init__(self, encoder):
        self.encoder = encoder

    @staticmethod
    def refuse(status, message, field=None):
        error = {"message": message, "type": "invalid_request_error", "param": field, "code": None}
        return Refusal(status, {"error": error})

    def answer(self, request):
        model, texts = request.get("model"), request.get("input")
        if not is_text(model):
            raise self.refuse(400, "you must provide a model parameter")
        texts = [texts] if isinstance(texts, str) else texts
        if not isinstance(texts, list) or not texts or not all(map(is_text, texts)):
            raise self.refuse(400, "'$.input' is invalid: a text or a list of texts, none of them blank", "input")
        if len(texts) > MAX_EMBEDDING_INPUTS:
            raise self.refuse(400, f"'$.input' is invalid: at most {MAX_EMBEDDING_INPUTS} texts", "input")
        if request.get("dimensions", WIDTH) != WIDTH:
            raise self.refuse(400, "This model does not support specifying dimensions.", "dimensions")
        form = request.get("encoding_format", "float")
        if form not in ("float", "base64"):
            raise self.refuse(400, "'encoding_format' is `float` or `base64`", "encoding_format")
        encoded = self.encoder.encode(texts)
        data = [
            {"object": "embedding", "index": place, "embedding": self.written(one.vector, form)}
            for place, one in enumerate(encoded)
        ]
        tokens = sum(one.tokens for one in encoded)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return {"object": "list", "data": data, "model": model, "usage": usage}

    @staticmethod
    def written(vector, form):
        if form == "base64":
            return base64.b64encode(vector.astype("<f4", copy=False).tobytes()).decode()
        return np.asarray(vector, np.float64).tolist()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # An answer is small and waited for.
    disable_nagle_algorithm = True
    wbufsize = -1
    # By path; set before the server starts.
    gets, posts = {}, {}

    def do_GET(self):
        read = self.gets.get(self.route())
        if read is None:
            self.no_route(self.posts)
        else:
            self.reply(200, read())

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or int(length) > MAX_BODY_BYTES:
            # The body is not read, so nothing else can come over this connection.
            self.close_connection = True
            self.reply(413 if length else 411, "length limit exceeded" if length else "length required")
            return
        body = self.rfile.read(int(length))
        api = self.posts.get(self.route())
        if api is None:
            self.no_route(self.gets)
            return
        try:
            try:
                request = json.loads(body)
            except ValueError:
                raise api.refuse(400, "Failed to parse the request body as JSON") from None
            if not isinstance(request, dict):
                raise api.refuse(422, "the request body must be a JSON object")
            self.reply(200, api.answer(request))
        except Refusal as refusal:
            self.reply(refusal.status, refusal.body)
        except Exception:
            traceback.print_exc()
            self.reply(500, "internal server error")

    def route(self):
        return self.path.partition("?")[0]

    def no_route(self, others):
        known = self.route() in others
        self.reply(405 if known else 404, {"detail": "Method Not Allowed" if known else "Not Found"})

    def reply(self, status, body):
        is_plain = isinstance(body, str)
        data = (body if is_plain else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8" if is_plain else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        """Nothing: a test's output is its own."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        # A caller that hangs up, which tests of deadlines do, is no error of this server.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    port = parser.parse_args().port
    encoder = Encoder()
    tei = Tei(encoder)
    Handler.gets = {"/healthz": lambda: {"status": "ok", "texts": len(encoder.known)}, "/info": tei.info}
    Handler.posts = {
        "/v1/rerank": Cohere(encoder, strict=False),
        "/v2/rerank": Cohere(encoder, strict=True),
        "/rerank": tei,
        "/v1/embeddings": Embeddings(encoder),
    }
    server = Server(("127.0.0.1", port), Handler)
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main()
