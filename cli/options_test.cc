#include "cli/options.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tributary::cli {
namespace {

using Command = CommandLine::Command;

CommandLine Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "tributary");
  return ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
}

TEST(CommandLine, TakesRelativeTimesAsValues) {
  CommandLine line = Parse({"flamegraph", "--server", "http://h:1", "--query", "{a=\"b\"}", "--from", "-60s", "--to",
                            "now", "--format", "folded", "--unit", "count", "--out", "-"});
  ASSERT_EQ(line.command, Command::kFlameGraph);
  EXPECT_EQ(line.flame_graph.query.from, "-60s");
  EXPECT_EQ(line.flame_graph.query.query, "{a=\"b\"}");
  EXPECT_EQ(line.flame_graph.query.server.url, "http://h:1");
  EXPECT_EQ(line.flame_graph.out, "-");
  EXPECT_EQ(Parse({"top", "--from=-5m"}).top.query.from, "-5m");
}

TEST(CommandLine, TakesFramesLinesAndLanguages) {
  const FrameOptions top = Parse({"top", "--frames", "all", "--lines", "--language", "python,go"}).top.frames;
  EXPECT_EQ(top.frames, "all");
  EXPECT_EQ(top.language, "python,go");
  EXPECT_TRUE(top.lines);
  const FrameOptions graph = Parse({"flamegraph"}).flame_graph.frames;
  EXPECT_EQ(graph.frames, "function");
  EXPECT_EQ(graph.language, "");
  EXPECT_FALSE(graph.lines);
  EXPECT_EQ(Parse({"top", "--frames", "address"}).exit_code, kExitUsage);
}

TEST(CommandLine, PrintsDocuments) {
  const auto output = [](std::vector<const char*> arguments, int exit_code) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const CommandLine line = Parse(std::move(arguments));
    EXPECT_EQ(line.command, Command::kNone);
    EXPECT_EQ(line.exit_code, exit_code);
    return ::testing::internal::GetCapturedStdout() + ::testing::internal::GetCapturedStderr();
  };
  EXPECT_NE(output({"--print-docs", "man"}, kExitOk).find(".TH TRIBUTARY 1"), std::string::npos);
  EXPECT_NE(output({"--print-docs=man", "symbols", "push"}, kExitOk).find(".TH TRIBUTARY\\-SYMBOLS\\-PUSH 1"),
            std::string::npos);
  EXPECT_NE(output({"--print-docs", "man", "top"}, kExitOk).find("another type of which the reducer has samples"),
            std::string::npos);
  EXPECT_NE(output({"--print-docs", "man", "top"}, kExitOk).find("\\-\\-no\\-json"), std::string::npos);
  EXPECT_NE(output({"--print-docs", "commands"}, kExitOk).find("\nsymbols-resolve\n"), std::string::npos);
  EXPECT_NE(output({"--print-docs", "yaml"}, kExitUsage).find("reads no configuration file"), std::string::npos);
  EXPECT_NE(output({"--print-docs", "man", "nonsense"}, kExitUsage).find("no command 'nonsense'"), std::string::npos);
  EXPECT_NE(output({"--print-docs"}, kExitUsage).find("must be man, bash, zsh or fish, not"), std::string::npos);
}

TEST(CommandLine, ReplaysAFileAsManyNodes) {
  CommandLine line = Parse({"replay", "x.rec", "--intake-host", "h", "--intake-port", "9", "--nodes", "1000", "--speed",
                            "max", "--tls-cert", "c", "--tls-key", "k", "--json"});
  ASSERT_EQ(line.command, Command::kReplay);
  EXPECT_EQ(line.replay.file, "x.rec");
  EXPECT_EQ(line.replay.intake_host, "h");
  EXPECT_EQ(line.replay.intake_port, 9);
  EXPECT_EQ(line.replay.nodes, 1000u);
  EXPECT_EQ(line.replay.speed, "max");
  EXPECT_EQ(line.replay.tls_key, "k");
  EXPECT_TRUE(line.replay.json);
  EXPECT_EQ(Parse({"inspect", "x.rec"}).inspect.file, "x.rec");
  EXPECT_EQ(Parse({"check", "/data", "--json"}).command, Command::kCheck);
  EXPECT_EQ(Parse({"check", "/data"}).check.directory, "/data");
}

TEST(CommandLine, GivesRecordTheArgumentsAfterTheDashes) {
  CommandLine line = Parse({"record", "--rate", "999", "--", "ls", "--rate", "--", "-l"});
  ASSERT_EQ(line.command, Command::kRecord);
  EXPECT_EQ(line.record.rate_hz, 999u);
  EXPECT_EQ(line.record.command, (std::vector<std::string>{"ls", "--rate", "--", "-l"}));
}

TEST(CommandLine, FollowsNewEventsUnlessAStartIsGiven) {
  CommandLine line = Parse({"events", "--follow", "--kind", "crash,oom"});
  ASSERT_EQ(line.command, Command::kEvents);
  EXPECT_EQ(line.events.query.from, "-11s");
  EXPECT_EQ(line.events.kind, "crash,oom");
  EXPECT_EQ(Parse({"events", "--follow", "--from", "-1h"}).events.query.from, "-1h");
  EXPECT_EQ(Parse({"events"}).events.query.from, "-15m");
}

TEST(CommandLine, DistinguishesUsageErrorsFromHelp) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  for (std::vector<const char*> bad : {std::vector<const char*>{},
                                       {"nonsense"},
                                       {"record"},
                                       {"record", "--"},
                                       {"status", "--", "ls"},
                                       {"top", "--limit", "0"},
                                       {"flamegraph", "--format", "png"},
                                       {"status", "--wrong"},
                                       {"inspect"},
                                       {"check"},
                                       {"replay"},
                                       {"replay", "x.rec", "--nodes", "0"},
                                       {"replay", "x.rec", "--tls-cert", "c"},
                                       {"top", "--tls-key", "k"},
                                       {"events", "--type", "cpu"},
                                       {"events", "--follow", "--programs"},
                                       {"events", "--follow", "--to", "now"},
                                       {"events", "--programs", "--kind", "exec"},
                                       {"record", "--rate", "0", "--", "ls"}}) {
    CommandLine line = Parse(bad);
    EXPECT_EQ(line.command, Command::kNone);
    EXPECT_EQ(line.exit_code, kExitUsage);
  }
  for (std::vector<const char*> fine : {std::vector<const char*>{"--help"}, {"--version"}, {"record", "--help"}}) {
    CommandLine line = Parse(fine);
    EXPECT_EQ(line.command, Command::kNone);
    EXPECT_EQ(line.exit_code, kExitOk);
  }
  std::string out = ::testing::internal::GetCapturedStdout();
  EXPECT_NE(::testing::internal::GetCapturedStderr(), "");
  EXPECT_NE(out.find("tributary 0."), std::string::npos);
  EXPECT_NE(out.find("-- COMMAND"), std::string::npos);
}

// As in every program of this project (base/options.h).
TEST(CommandLine, ExplainsErrorsAndSuggestsFixes) {
  const auto error = [](std::vector<const char*> arguments) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(Parse(std::move(arguments)).exit_code, kExitUsage);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(error({"top", "--limt", "3"}), "tributary: unknown option --limt; did you mean --limit?\n");
  EXPECT_EQ(error({"lines", "--jsn=x"}), "tributary: unknown option --jsn; did you mean --json?\n");
  EXPECT_EQ(error({"--versoin"}), "tributary: unknown option --versoin; did you mean --version?\n");
  EXPECT_EQ(error({"topp"}), "tributary: unknown command 'topp'; did you mean 'top'?\n");
  EXPECT_EQ(error({"symbols", "pus"}), "tributary: unknown command 'pus'; did you mean 'push'?\n");
  EXPECT_EQ(error({"top", "stray", "--json"}),
            "tributary: unexpected argument 'stray'; tributary top --help lists the options\n");
  EXPECT_EQ(error({"top", "--limit", "x"}), "tributary: --limit = x: must be a number from 1 to 10000\n");
  EXPECT_EQ(error({"top", "--limit"}), "tributary: --limit needs a value: maximum number of functions\n");
  EXPECT_EQ(error({"flamegraph", "--unit", "gpu"}), "tributary: --unit = gpu: must be ns or count\n");
  EXPECT_EQ(error({"replay", "f", "--tls-key", "k"}),
            "tributary: --tls-cert and --tls-key belong together: one is missing\n");
  EXPECT_EQ(error({"lines"}), "tributary: the argument FUNCTION is missing; tributary lines --help describes it\n");
}

TEST(CommandLine, TakesTheLastOfARepeatedOption) {
  EXPECT_EQ(Parse({"top", "--limit", "3", "--limit", "4"}).top.limit, 4u);
  EXPECT_EQ(
      Parse({"top", "--limit=3", "--server", "http://a", "--limit=5", "--server", "http://b"}).top.query.server.url,
      "http://b");
  EXPECT_EQ(Parse({"symbols", "push", "--server", "http://a", "x", "--server", "http://b", "y"}).push.paths,
            (std::vector<std::string>{"x", "y"}));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Parse({"top", "--limit", "x", "--limit", "4"}).exit_code, kExitUsage);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "tributary: --limit = x: must be a number from 1 to 10000\n");
}

TEST(CommandLine, SwitchesCanBeTurnedOff) {
  EXPECT_FALSE(Parse({"top", "--json", "--no-json"}).top.json);
  EXPECT_TRUE(Parse({"top", "--no-json", "--json"}).top.json);
  EXPECT_FALSE(Parse({"replay", "f", "--tls", "--tls=off"}).replay.tls);
  EXPECT_TRUE(Parse({"symbols", "push", "--whole=yes", "x"}).push.whole);
  EXPECT_EQ(Parse({"symbols", "rm", "aabbccdd", "00112233"}).remove_symbols.build_ids,
            (std::vector<std::string>{"aabbccdd", "00112233"}));
  const auto error = [](std::vector<const char*> arguments) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(Parse(std::move(arguments)).exit_code, kExitUsage);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(error({"top", "--json=maybe"}), "tributary: --json = maybe: must be true or false\n");
  EXPECT_EQ(error({"top", "--no-limit"}), "tributary: unknown option --no-limit; did you mean --limit?\n");
  EXPECT_EQ(error({"--no-version"}), "tributary: unknown option --no-version; did you mean --version?\n");
}

TEST(CommandLine, EveryCommandThatAsksAReducerSignsIn) {
  const auto parse = [](std::vector<const char*> arguments) {
    for (const char* more : {"--token-file", "t", "--tls-ca", "a", "--tls-cert", "c", "--tls-key", "k"}) {
      arguments.push_back(more);
    }
    return Parse(std::move(arguments));
  };
  for (const ServerOptions& server :
       {parse({"status"}).status.server, parse({"top"}).top.query.server, parse({"lines", "f"}).lines.query.server,
        parse({"rollouts"}).rollouts.query.server, parse({"events"}).events.query.server,
        parse({"flamegraph"}).flame_graph.query.server, parse({"symbols"}).symbols.query.server,
        parse({"symbols", "push", "x"}).push.server, parse({"symbols", "rm", "aabbcc"}).remove_symbols.server}) {
    EXPECT_EQ(server.token_file, "t");
    EXPECT_EQ(server.tls_ca, "a");
    EXPECT_EQ(server.tls_cert, "c");
    EXPECT_EQ(server.tls_key, "k");
  }
}

TEST(CommandLine, HelpDoesNotContainTheToken) {
  setenv("TRIBUTARY_TOKEN", "0123456789abcdef", 1);
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(Parse({"top", "--help"}).exit_code, kExitOk);
  const std::string help = ::testing::internal::GetCapturedStdout();
  unsetenv("TRIBUTARY_TOKEN");
  EXPECT_NE(help.find("--token-file FILE"), std::string::npos);
  EXPECT_EQ(help.find("0123456789"), std::string::npos);
}

TEST(CommandLine, HelpLooksLikeTheOtherPrograms) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(Parse({"top", "-h"}).exit_code, kExitOk);
  const std::string help = ::testing::internal::GetCapturedStdout();
  EXPECT_TRUE(help.starts_with("tributary top — ")) << help;
  EXPECT_NE(help.find("\nUsage: tributary top [options]\n"), std::string::npos) << help;
  EXPECT_NE(help.find("  --server URL\n      URL of the reducer's web page and API (reducer --http-listen) (default "
                      "http://127.0.0.1:4040)\n"
                      "      environment TRIBUTARY_SERVER\n"),
            std::string::npos)
      << help;
  EXPECT_NE(help.find("  --json\n"), std::string::npos) << help;
}

}  // namespace
}  // namespace tributary::cli
