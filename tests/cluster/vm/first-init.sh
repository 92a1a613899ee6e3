#!/bin/busybox sh
# The VM node's first process: finds the disks, puts in what this cluster's node is given, and hands over.
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for name in virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk; do insmod "/modules/$name.ko"; done
i=0
while [ ! -e /dev/vdb ] && [ $i -lt 300 ]; do sleep 0.1; i=$((i + 1)); done
mount -t ext4 -o rw,noatime /dev/vda /newroot
mount -t ext4 -o rw,noatime /dev/vdb /newroot/var/lib/containerd
cp -a /given/. /newroot/
mount --move /dev /newroot/dev
umount /sys /proc
exec switch_root /newroot /usr/sbin/node-init
