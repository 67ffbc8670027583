"""A LangChain chain: retriever, prompt, model."""

from __future__ import annotations

from desk import write_answer
from langchain_core.language_models import SimpleChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_retriever import app as retriever


class CopyingModel(SimpleChatModel):
    """Copies a sentence of its prompt; put your chat model in its place."""

    @property
    def _llm_type(self) -> str:
        return "copying"

    def _call(self, messages: list, *_: object, **__: object) -> str:
        return write_answer(messages[-1].content)


passages = retriever | (lambda found: "\n".join(document.page_content for document in found))
prompt = ChatPromptTemplate.from_template("{passages}\nQuestion: {question}")
steps = {"passages": passages, "question": RunnablePassthrough()}
app = steps | prompt | CopyingModel() | StrOutputParser()
