#!/bin/sh
# Plays kubectl in run_tests.rs: exec runs its words here, replace answers what it is sent, get hangs.
# Never written by a test: a file that another thread's child still has open can't be executed.
for word; do
  case $word in
    replace) exec cat ;;
    get) exec sleep 77 ;;
    exec) break ;;
  esac
done
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
