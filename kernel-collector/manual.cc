#include "kernel-collector/manual.h"

namespace tributary {

docs::Manual CollectorManual() {
  return {
      .section = 8,
      .description =
          {"kernel-collector samples every process of a Linux machine, whatever its language, and sends the raw stacks "
           "to a reducer, which names, stores and shows them. Run one on each machine. It needs no debug symbols, and "
           "no process has to be restarted.",
           "It needs Linux 5.10 or later with BTF (/sys/kernel/btf/vmlinux), and root or the capabilities CAP_BPF, "
           "CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_SYSLOG and CAP_CHECKPOINT_RESTORE.",
           "kernel-collector uses at most a share of the machine's CPU time (--cpu-budget). When it would use more, it "
           "lowers its sample rate, and raises the rate again later. Each sample stands for one sampling period "
           "at the rate when it was taken, so shares stay correct.",
           "While no reducer answers, samples wait in memory and, with --spool-dir, on disk. Lost samples are counted "
           "by reason: captured = stored + lost."},
      .environment = {{"SOURCE_DATE_EPOCH",
                       "The date of the page that --print-docs man prints, in seconds since 1970."}},
      .files = {{"/etc/tributary/kernel-collector.yaml",
                 "The configuration file that packages install, for --config. Its keys are the options' names with _ "
                 "for each dash. --print-docs yaml prints it anew."},
                {"/sys/fs/bpf/tributary",
                 "Counters that stay in the kernel when a collector is killed, so that the next collector reports the "
                 "samples that it lost."},
                {"/etc/machine-id", "The machine's id, if --node-id is not set."}},
      .signals = {{"SIGTERM, SIGINT", "Stop sampling, send the captured samples within --shutdown-timeout, and exit."},
                  {"SIGHUP",
                   "Read the options again. Options that mention SIGHUP in their description take effect at once. The "
                   "log names the other options that changed: they need a restart."},
                  {"SIGUSR1", "Write every metric to the log."}},
      .exit_status = {{"0",
                       "The program stopped after a signal, or printed what an option asked for. With --health-check: "
                       "it is healthy."},
                      {"1",
                       "Sampling could not begin. The message on standard error says what to do. With --health-check: "
                       "it is not healthy."},
                      {"2", "An option is wrong."}},
      .examples = {{"Profile this machine, and send to a reducer elsewhere:",
                    "kernel-collector --intake-host reducer.example"},
                   {"Use two reducers, and keep up to 1 GiB of samples on disk while neither answers:",
                    "kernel-collector --intake-host a.example,b.example \\\n"
                    "    --spool-dir /var/lib/tributary/spool --spool-bytes-max 1GiB"},
                   {"Print the value of each option, and where it comes from:",
                    "kernel-collector --config /etc/tributary/kernel-collector.yaml --print-config"}},
      .see_also = {"reducer(8)", "k8s-collector(8)", "tributary(1)", "bpf(2)", "perf_event_open(2)"},
  };
}

}  // namespace tributary
