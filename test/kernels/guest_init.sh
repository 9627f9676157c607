#!/bin/sh
# First process of a guest. It joins the host's network, starts the collector, and runs the workloads when the host
# requests it on the console. It also prints values that only the guest knows to the console. The variables intake_port,
# sink_port, epoch and paranoid come from the kernel's command line. The host's address is 10.0.2.2.
export PATH=/bin LD_LIBRARY_PATH=/lib HOME=/tmp
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
mount -t bpf bpf /sys/fs/bpf; mount -t cgroup2 cgroup2 /sys/fs/cgroup
date -s "@$epoch" >/dev/null
for module in $(cat /modules/order); do insmod /modules/$module.ko; done
ifconfig lo 127.0.0.1 up
ifconfig eth0 10.0.2.15 netmask 255.255.255.0 up
echo guest > /proc/sys/kernel/hostname
echo; echo "release $(uname -r)"

# Load a BPF program before the collector starts.
(while [ ! -e /tmp/burn ]; do sleep 1; done; echo 3) | bpf_burner early &
early=$!
while ! grep -q '_early' /proc/kallsyms; do sleep 1; done

[ -z "$paranoid" ] || echo "$paranoid" >/proc/sys/kernel/perf_event_paranoid
# If there is a container image, use its collector. It sees the same parts of this machine as a container with
# --privileged --pid host.
if [ -d /image ]; then
  for folder in proc sys dev; do mount --rbind /$folder /image/$folder; done
  kernel_collector() { LD_LIBRARY_PATH= exec chroot /image /usr/bin/kernel-collector "$@"; }
else
  kernel_collector() { exec kernel-collector "$@"; }
fi
kernel_collector --intake-host 10.0.2.2 --intake-port "$intake_port" --sample-rate 199 --cpu-budget off --batch-interval 1s 2>/tmp/collector.log &
collector=$!

# await WORDS: waits for the words in the collector's log, for at most a minute. The collector looks for CPUs every two
# seconds.
await() {
  left=60
  while [ $left -gt 0 ] && ! grep -q "$1" /tmp/collector.log; do left=$((left - 1)); sleep 1; done
}

while read -r word; do
  case $word in
    run)
      echo "programs $(grep -h '^prog_id' /proc/$collector/fdinfo/* | sort -u | wc -l)"
      truth 5 & truth_nofp 5
      wait $!
      (lives 1 200 && lives 2 1 --kinds oom) >/tmp/lives || echo "lives failed"
      # Keep the card's modules busy with sending until the host closes the connection.
      nc 10.0.2.2 "$sink_port" </dev/zero
      : >/tmp/burn
      echo 3 | bpf_burner late
      wait $early
      echo BEGIN-LIVES; cat /tmp/lives; echo END-LIVES
      echo BEGIN-KALLSYMS; grep ' [tTwW] .*\[virtio_' /proc/kallsyms; echo END-KALLSYMS
      echo "workloads done"
      ;;
    hotplug)
      # By now the collector has dropped the capabilities that it does not need.
      echo "kept $(grep '^CapEff' /proc/$collector/status) paranoid $(cat /proc/sys/kernel/perf_event_paranoid)"
      echo 0 >/sys/devices/system/cpu/cpu1/online
      await 'CPU went offline cpu=1'
      echo 1 >/sys/devices/system/cpu/cpu1/online
      await 'CPU came online cpu=1'
      cp /bin/truth /tmp/on_cpu1
      taskset 2 /tmp/on_cpu1 2
      echo "hotplug done"
      ;;
    stop)
      kill -TERM $collector; wait $collector; echo "collector exit $?"
      break
      ;;
  esac
done
echo BEGIN-LOG; cat /tmp/collector.log; echo END-LOG
poweroff -f
