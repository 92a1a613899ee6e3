# a breakpoint that is armed, gdb killed: what is left in the target's text?
cd /tmp
gdb -q -nx -iex "set pagination off" -iex "set sysroot /proc/1/root" -iex "set auto-load python-scripts off" -ex "file /proc/1/root/zooapp" -ex "attach 1" -ex "break main.reply" -ex "info symbol main.reply" -ex "print &'main.reply'" -ex continue >/tmp/g.out 2>&1 </dev/zero &
G=$!
sleep 2.5
addr=$(grep -o '0x[0-9a-f]* <main.reply>' /tmp/g.out | head -1 | cut -d' ' -f1); echo "addr $addr"
bp=$(grep -o 'Breakpoint 1 at 0x[0-9a-f]*' /tmp/g.out | grep -o '0x.*'); echo bp $bp
peek() { dd if=/proc/1/mem bs=1 skip=$((bp)) count=4 2>/dev/null | od -An -tx1; }
echo "armed: $(peek)"; grep -E "TracerPid|State" /proc/1/status
kill -$1 $G; sleep 0.5
echo "after kill -$1: $(peek)"; grep -E "TracerPid|State" /proc/1/status
curl -s -m 3 localhost:8080/ ; echo "curl $?"
curl -s -m 3 localhost:8080/signals; echo "curl $?"
tail -3 /tmp/g.out
