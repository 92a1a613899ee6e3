# The seat: what podbench lands beside a running process.
#
#   docker build --target full -t REF .        (or `buildah bud`)
#
# Targets: slim (ssh and the agent) and full (slim's contents and the tools).
# The agent is a static binary, built beforehand for the image's architecture
# and taken from the context; both targets copy it last, so that a new agent
# costs one small layer and no package is installed again.
# image/README.md says why each thing is as it is; image/check.sh checks it.

FROM debian:bookworm-slim AS base
# nsswitch: a uid that the image doesn't know gets its record from a file that
# the seat itself can write. That database serves no uid under 500, so each of
# those has a record here, and the accounts of the distribution get a shell and
# a home of their own: the target may well run as www-data or nobody.
# Nothing may be setuid or setgid: with one such file, a record that anyone can
# write would lend other identities.
RUN set -eu; \
    apt-get update; \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        bash ca-certificates less libnss-extrausers libnss-wrapper \
        openssh-client openssh-server openssh-sftp-server procps; \
    rm -f /etc/ssh/ssh_host_*; \
    sed -i 's/^passwd:.*/passwd:         files extrausers/' /etc/nsswitch.conf; \
    awk -F: -v OFS=: ' \
        function home(uid) { return "/tmp/podbench-" uid } \
        function record(uid, gid) { print "podbench-" uid, "*", uid, gid, "", home(uid), "/bin/bash" } \
        $3 == 0 { print; next } \
        { known[$3] = 1; $6 = home($3); $7 = "/bin/bash"; print } \
        END { \
            for (uid = 1; uid < 500; uid++) if (!(uid in known)) record(uid, 65534); \
            if (!(65532 in known)) record(65532, 65532) \
        }' /etc/passwd >/etc/passwd.new; \
    mv /etc/passwd.new /etc/passwd; \
    install -d -m 0755 /var/lib/extrausers /run/sshd; \
    install -m 0666 /dev/null /var/lib/extrausers/passwd; \
    install -d -m 1777 /run/podbench; \
    : >/etc/motd; \
    find / -xdev -perm /6000 -exec chmod ug-s {} +; \
    rm -rf /var/lib/apt/lists/* /var/cache/debconf/*-old /var/cache/ldconfig/aux-cache \
        /var/lib/dpkg/*-old /var/log/apt /var/log/*.log /etc/passwd- /etc/group- /etc/shadow- /etc/gshadow-; \
    test -z "$(find / -xdev -perm /6000)"
ENV LANG=C.UTF-8
CMD ["/usr/local/bin/podbench", "agent"]

FROM base AS tools
# git brings all of Perl, 45 MB, for its mail and Subversion; the language itself stays.
RUN set -eu; \
    apt-get update; \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        curl gdb git iproute2 rsync strace vim-tiny xz-utils; \
    rm -rf /usr/share/perl /usr/share/perl5 /usr/lib/*/perl /usr/lib/*/perl5; \
    find / -xdev -perm /6000 -exec chmod ug-s {} +; \
    rm -rf /var/lib/apt/lists/* /var/cache/debconf/*-old /var/cache/ldconfig/aux-cache \
        /var/lib/dpkg/*-old /var/log/apt /var/log/*.log /etc/passwd- /etc/group- /etc/shadow- /etc/gshadow-; \
    test -z "$(find / -xdev -perm /6000)"

FROM base AS slim
USER 65532:65532
ARG PODBENCH_AGENT=image/out/podbench
COPY --chmod=0755 ${PODBENCH_AGENT} /usr/local/bin/podbench

FROM tools AS full
# Before Debian's on PATH: who calls gdb gets one that reads the target's files.
RUN ln -s podbench /usr/local/bin/gdb
USER 65532:65532
ARG PODBENCH_AGENT=image/out/podbench
COPY --chmod=0755 ${PODBENCH_AGENT} /usr/local/bin/podbench
