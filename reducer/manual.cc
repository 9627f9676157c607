#include "reducer/manual.h"

namespace tributary {

docs::Manual ReducerManual() {
  return {
      .section = 8,
      .description =
          {"reducer receives samples from kernel-collectors, stores the samples, and finds the names of the functions "
           "in their stacks. It shows the samples on a web page, serves them by an HTTP API to tributary(1), and sends "
           "them as OTLP profiles to other programs (--export). Run one reducer for a whole fleet, or several reducers "
           "that each serve a part of the collectors. A reducer needs no privileges.",
           "Collectors connect to --intake-listen. The web page, the API and the metrics are at --http-listen. By "
           "default, both addresses are on 127.0.0.1, which only this machine can reach.",
           "The intake can require TLS, client certificates and tokens. The web page, the API and the metrics need no "
           "sign-in on loopback. On other addresses, callers must sign in with a token (--http-token-file), a "
           "certificate (--http-tls-ca) or through a proxy (--http-proxy-from), unless --allow-anonymous is set.",
           "Samples are stored in --data-dir, or in --store if given. Single samples are kept for --retention-raw, and "
           "their sums per minute for --retention. Process events are kept for --retention-events. When all of these "
           "together reach --store-bytes-max, the oldest of them are removed."},
      .environment =
          {{"SOURCE_DATE_EPOCH",
            "Date of the man page (--print-docs man). The value is a number of seconds since 1970."},
           {"OTEL_EXPORTER_OTLP_*",
            "OpenTelemetry's variables for exporters. They fill what a URL of --export leaves open, and name "
            "the receiver of --export otlp. docs/export.md lists them."}},
      .files = {{"/etc/tributary/reducer.yaml",
                 "The configuration file of packages, for --config. Its keys are option names with _ for each dash. "
                 "reducer --print-docs yaml prints such a file, with the default of each option."},
                {"/var/lib/tributary",
                 "The data directory of a reducer that runs as root, if --data-dir is not given. For other users it is "
                 "$XDG_STATE_HOME/tributary or, if this variable is not set, ~/.local/state/tributary."}},
      .signals = {{"SIGTERM, SIGINT",
                   "Stop receiving samples, store and export the samples that have been received, and exit."},
                  {"SIGHUP",
                   "Read the options again. New values of options that mention SIGHUP in their description take effect "
                   "without a restart. The log names the changed options that need a restart."}},
      .exit_status = {{"0",
                       "The program stopped after a signal, or printed the output of an option such as --version. With "
                       "--health-check: the running program is healthy."},
                      {"1",
                       "The program could not start. The message on standard error says why. With --health-check: the "
                       "running program is not healthy, or no program runs."},
                      {"2", "An option is unknown, or its value is invalid."}},
      .examples = {{"Receive the samples of this machine's collector, and show them at http://127.0.0.1:4040/:",
                    "reducer --data-dir /var/lib/tributary"},
                   {"Receive the samples of a fleet over TLS, from collectors that send a token:",
                    "reducer --intake-listen 0.0.0.0:8000 \\\n"
                    "    --tls-cert server.pem --tls-key server.key --intake-token-file tokens"},
                   {"Send all samples to an OpenTelemetry Collector:", "reducer --export otlp://collector:4317"},
                   {"Send all samples over HTTP and TLS, with the headers of a file:",
                    "reducer --export 'otlp+https://gateway:4318?headers_file=/etc/tributary/headers'"},
                   {"Write folded stacks to files, one for each service and hour:",
                    "reducer --export file:///var/lib/tributary/stacks"}},
      .see_also = {"kernel-collector(8)", "k8s-collector(8)", "tributary(1)"},
  };
}

}  // namespace tributary
