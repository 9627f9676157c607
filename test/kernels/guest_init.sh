#!/bin/sh
# First process of a guest: joins the host's network, starts the collector, and runs the workloads when the host says so on the
# console; the console also hears what only the guest knows. intake_port, sink_port and epoch come from the kernel's command line
# as variables; the host is 10.0.2.2 here.
export PATH=/bin LD_LIBRARY_PATH=/lib HOME=/tmp
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
mount -t bpf bpf /sys/fs/bpf; mount -t cgroup2 cgroup2 /sys/fs/cgroup
date -s "@$epoch" >/dev/null
for module in $(cat /modules/order); do insmod /modules/$module.ko; done
ifconfig lo 127.0.0.1 up
ifconfig eth0 10.0.2.15 netmask 255.255.255.0 up
echo guest > /proc/sys/kernel/hostname
echo; echo "release $(uname -r)"

# A BPF program that is there before the collector.
(while [ ! -e /tmp/burn ]; do sleep 1; done; echo 3) | bpf_burner early &
early=$!
while ! grep -q '_early' /proc/kallsyms; do sleep 1; done

kernel-collector --intake-host 10.0.2.2 --intake-port "$intake_port" --sample-rate 199 --cpu-budget off --batch-interval 1s 2>/tmp/collector.log &
collector=$!
while read -r word; do
  case $word in
    run)
      echo "programs $(grep -h '^prog_id' /proc/$collector/fdinfo/* | sort -u | wc -l)"
      truth 5 & truth_nofp 5
      wait $!
      # The card's modules send until the host has had enough.
      nc 10.0.2.2 "$sink_port" </dev/zero
      : >/tmp/burn
      echo 3 | bpf_burner late
      wait $early
      echo BEGIN-KALLSYMS; grep ' [tTwW] .*\[virtio_' /proc/kallsyms; echo END-KALLSYMS
      echo "workloads done"
      ;;
    stop)
      kill -TERM $collector; wait $collector; echo "collector exit $?"
      break
      ;;
  esac
done
echo BEGIN-LOG; cat /tmp/collector.log; echo END-LOG
poweroff -f
