"""A Haystack pipeline; misslink reads its tracer."""

import os

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

from desk import PASSAGES, write_answer
from haystack import Document, Pipeline, component
from haystack.components.builders import PromptBuilder
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore


@component
class CopyingModel:
    """Copies a sentence of its prompt; put your generator in its place."""

    @component.output_types(replies=list[str])
    def run(self, prompt: str) -> dict[str, list[str]]:
        """Answer a prompt."""
        return {"replies": [write_answer(prompt)]}


store = InMemoryDocumentStore()
store.write_documents([Document(id=name, content=text) for name, text in PASSAGES.items()])
template = "{% for d in documents %}{{ d.content }}\n{% endfor %}Question: {{ question }}"

app = Pipeline()
app.add_component("retriever", InMemoryBM25Retriever(store, top_k=3))
app.add_component("prompt", PromptBuilder(template, required_variables="*"))
app.add_component("model", CopyingModel())
app.connect("retriever.documents", "prompt.documents")
app.connect("prompt", "model")
