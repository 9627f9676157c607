#include "kernel-collector/manual.h"

namespace tributary {

docs::Manual CollectorManual() {
  return {
      .section = 8,
      .description =
          {"kernel-collector samples the stacks of all processes of a Linux machine, in any programming language, and "
           "sends them to a reducer. The reducer finds the names of functions, and stores and shows the stacks. Run "
           "one kernel-collector on each machine. It needs no debug symbols, and no process has to be restarted.",
           "It needs Linux 5.10 or later with BTF (/sys/kernel/btf/vmlinux), and root or the capabilities CAP_BPF, "
           "CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_SYSLOG and CAP_CHECKPOINT_RESTORE.",
           "kernel-collector uses at most a configured share of the machine's CPU time (--cpu-budget). To stay below "
           "it, kernel-collector lowers its sample rate, and raises the rate again later. Each sample counts as the "
           "time between two samples at the current rate. So CPU times stay correct when the rate changes.",
           "While no reducer answers, samples wait in memory and, with --spool-dir, on disk. Every lost sample is "
           "counted, with a reason: once all samples are delivered, captured = stored + lost.",
           "With --intake-encoder otlp_profiles or otlp_log, kernel-collector needs no reducer: it names the functions "
           "itself, and sends OTLP profiles or logs to --intake-host. With --intake-encoder console, it prints the "
           "stacks."},
      .environment = {{"OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_COMPRESSION, OTEL_EXPORTER_OTLP_TIMEOUT",
                       "Headers, compression and timeout of requests to a receiver of OTLP. The other "
                       "OTEL_EXPORTER_OTLP_* variables are read, too, except for the endpoint."},
                      {"SOURCE_DATE_EPOCH",
                       "Date of the man page (--print-docs man). The value is a number of seconds since 1970."}},
      .files = {{"/etc/tributary/kernel-collector.yaml",
                 "The configuration file of packages, for --config. Its keys are option names with _ for each dash. "
                 "kernel-collector --print-docs yaml prints such a file, with the default of each option."},
                {"/sys/fs/bpf/tributary",
                 "Counters of captured and lost samples. They stay in the kernel when a collector is killed, so that "
                 "the next collector can report the samples that the killed collector lost."},
                {"/etc/machine-id", "The id of this node, if --node-id is not set."}},
      .signals = {{"SIGTERM, SIGINT", "Stop sampling, send the captured samples within --shutdown-timeout, and exit."},
                  {"SIGHUP",
                   "Read the options again. New values of options that mention SIGHUP in their description take effect "
                   "without a restart. The log names the changed options that need a restart."},
                  {"SIGUSR1", "Write every metric to the log."}},
      .exit_status = {{"0",
                       "The program stopped after a signal, or printed the output of an option such as --version. With "
                       "--health-check: the running program is healthy."},
                      {"1",
                       "Sampling could not begin. The message on standard error says why. With --health-check: the "
                       "running program is not healthy, or no program runs."},
                      {"2", "An option is unknown, or its value is invalid."}},
      .examples = {{"Profile this machine, and send the samples to a reducer on another machine:",
                    "kernel-collector --intake-host reducer.example"},
                   {"Use two reducers, and store up to 1 GiB of samples on disk while neither of them answers:",
                    "kernel-collector --intake-host a.example,b.example \\\n"
                    "    --spool-dir /var/lib/tributary/spool --spool-bytes-max 1GiB"},
                   {"Send OTLP profiles to an OpenTelemetry Collector, without a reducer:",
                    "kernel-collector --intake-encoder otlp_profiles --intake-host http://collector.example:4318"},
                   {"Print the value of each option, and its source (flag, environment variable, file or default):",
                    "kernel-collector --config /etc/tributary/kernel-collector.yaml --print-config"}},
      .see_also = {"reducer(8)", "k8s-collector(8)", "tributary(1)", "bpf(2)", "perf_event_open(2)"},
  };
}

}  // namespace tributary
