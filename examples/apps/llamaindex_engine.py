"""A LlamaIndex query engine; misslink reads its instrumentation events."""

from typing import Any

from desk import PASSAGES, search, write_answer
from llama_index.core import QueryBundle, Settings
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

Settings.tokenizer = str.split  # the default tokenizer is downloaded


class KeywordRetriever(BaseRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        names = search(query_bundle.query_str)
        return [NodeWithScore(node=TextNode(id_=name, text=PASSAGES[name])) for name in names]


class CopyingModel(CustomLLM):
    """Copies a sentence of its prompt."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="copying")

    @llm_completion_callback()
    def complete(self, prompt: str, **_: Any) -> CompletionResponse:
        passages, _, question = prompt.rpartition("Query:")
        return CompletionResponse(text=write_answer(f"{passages} Question: {question}"))

    stream_complete = complete


app = RetrieverQueryEngine.from_args(KeywordRetriever(), llm=CopyingModel())
