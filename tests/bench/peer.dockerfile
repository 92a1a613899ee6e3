# The seat image of podbench 0.11.0 on the base that our own image has, with what
# its image is known to hold: the same debuggers, tools and accounts, its wheel,
# uv and debugpy. Two differences, both to its advantage in what is measured:
# Python is Debian's (its own CPython isn't on PyPI; about 100 MB less), and no
# debuginfod server is named (its agent would wait for one that a sealed cluster
# can't reach). The bytecode is compiled, as pip does: a seat can't write it.
FROM debian:bookworm-slim
RUN set -eu; \
    apt-get update; \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        binutils ca-certificates curl debuginfod elfutils gdb gdbserver git iproute2 less libnss-extrausers \
        lsof openssh-client openssh-server openssh-sftp-server procps python3 rsync strace tini xz-utils; \
    rm -rf /etc/ssh/ssh_host_* /var/lib/apt/lists/*; \
    install -d /run/sshd /etc/podbench; \
    sed -i 's/^passwd:.*/passwd:         files extrausers/' /etc/nsswitch.conf; \
    install -d /var/lib/extrausers; \
    install -m 0666 /dev/null /var/lib/extrausers/passwd; \
    awk -F: '{ known[$3] = 1 } END { for (uid = 1; uid < 500; uid++) if (!(uid in known)) \
        print "podbench-" uid ":*:" uid ":65534::/tmp/podbench-" uid ":/bin/bash" }' /etc/passwd >/tmp/seeded; \
    cat /tmp/seeded >>/etc/passwd; \
    rm /tmp/seeded; \
    chmod g=u /etc/passwd /etc/group
COPY . /
RUN set -eu; \
    python3 -m compileall -q /app/lib /opt/podbench/debugpy || true; \
    podbench --version
CMD ["podbench", "agent"]
