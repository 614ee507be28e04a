# The service (docs/serving.md). Models, tables and the token are mounted; nothing of them is in the image.
ARG BASE=python:3.13-slim-bookworm

FROM ${BASE} AS build
# serve,postgres,nn adds the models that need PyTorch, and about 1 GB
ARG EXTRAS=serve,postgres
WORKDIR /src
COPY . .
RUN python3 -m venv /opt/corank && /opt/corank/bin/pip install --no-cache-dir -c constraints.txt ".[${EXTRAS}]"
# Machine code is kept beside the kernels, so that a container that cannot write starts without compiling.
RUN /opt/corank/bin/python docker/warm.py

FROM ${BASE}
RUN useradd --uid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin corank && install -d -o corank /data
COPY --from=build /opt/corank /opt/corank
ENV PATH=/opt/corank/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 10001
WORKDIR /models
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health/ready', timeout=4)"]
ENTRYPOINT ["corank", "serve"]
CMD ["best.corank", "--host", "0.0.0.0", "--token-file", "/run/secrets/token", "--store", "/data/feedback.sqlite"]
