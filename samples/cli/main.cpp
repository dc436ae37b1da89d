// vkformer: the command line program. Parses the command line and runs one command.
#include <exception>
#include <sstream>

#include "command_line.h"
#include "literal_arguments.h"
#include "option_facts.h"
#include "output.h"
#include "ranks.h"
#include "usage.h"

namespace vkformer::cli {

namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  vkformer devices\n"
    "  vkformer generate models/g2p-en attention is all you need\n"
    "  vkformer generate models/shakespeare ROMEO: --temperature 0.8\n"
    "  vkformer attend models/g2p-en attention --layer 1 --png attention.png\n"
    "  vkformer help COMMAND\n"
    "\n"
    "Data goes to stdout, messages and progress to stderr.\n"
    "\n"
    "Environment:\n"
    "  NO_COLOR         if set, terminals get no colors\n"
    "  VK_DRIVER_FILES  the only Vulkan drivers to load; vkformer doctor shows what is set\n"
    "  XDG_CACHE_HOME   folder above that of the pipeline cache, ~/.cache if not set\n"
    "\n"
    "Exit codes:\n"
    "  0  success\n"
    "  1  the operation failed; a message on stderr says why\n"
    "  2  the command line is wrong\n"
    "  3  the model family, operator or file feature is not supported\n"
    "  4  no suitable Vulkan device\n";

void add_commands(CLI::App& app, CommandLine& line) {
  add_devices_command(app, line);
  add_families_command(app, line);
  add_pull_command(app, line);
  add_inspect_command(app, line);
  add_plan_command(app, line);
  add_embed_command(app, line);
  add_classify_command(app, line);
  add_rerank_command(app, line);
  add_detect_command(app, line);
  add_depth_command(app, line);
  add_segment_command(app, line);
  add_answer_command(app, line);
  add_fill_mask_command(app, line);
  add_generate_command(app, line);
  add_chat_command(app, line);
  add_serve_command(app, line);
  add_transcribe_command(app, line);
  add_caption_command(app, line);
  add_speak_command(app, line);
  add_attend_command(app, line);
  add_run_command(app, line);
  add_op_command(app, line);
  add_tokenize_command(app, line);
  add_bench_command(app, line);
  add_profile_command(app, line);
  add_quantize_command(app, line);
  add_pack_command(app, line);
  add_tune_command(app, line);
  add_conformance_command(app, line);
  add_fingerprint_command(app, line);
  add_compare_command(app, line);
  add_verify_command(app, line);
  add_case_command(app, line);
  add_doctor_command(app, line);
  add_help_command(app, line);
  add_completion_command(app, line);
  add_man_command(app, line);
}

int run_command(const CLI::App& command, CommandLine& line) {
  if (const Status joined = join_ranks(command); !joined) return report(joined.error());
  if (!is_first_rank()) line.common.quiet = true;
  line.common.device.device = device_of_rank(line.common);
  for (const std::function<Status()>& check : line.checks) {
    if (const Status passed = check(); !passed) return report(passed.error());
  }
  return line.run ? line.run() : kExitUsage;
}

int run_program(int argc, char** argv) {
  CLI::App app("Transformer models on Vulkan compute shaders.", "vkformer");
  CommandLine line;
  app.set_version_flag("--version", "vkformer " VKFORMER_VERSION);
  app.footer(kFooter);
  app.require_subcommand(1);
  // Commands inherit both.
  app.formatter(std::make_shared<HelpFormatter>());
  app.option_defaults()->always_capture_default();
  add_commands(app, line);
  accept_literals(app);
  try {
    app.parse(literal_arguments(argc, argv));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return report_usage(without_marks(usage_message(app, error)));
    // What --help and --version print must arrive, too.
    std::ostringstream shown;
    app.exit(error, shown, shown);
    std::string text = shown.str();
    if (text.ends_with('\n')) text.pop_back();
    print_line(text);
    return finish_output(kExitOk);
  }
  return leave_ranks(finish_output(run_command(*app.get_subcommands().front(), line)));
}

}  // namespace

}  // namespace vkformer::cli

int main(int argc, char** argv) {
  // The library throws nothing; what the standard library may throw (no memory) ends here.
  try {
    return vkformer::cli::run_program(argc, argv);
  } catch (const std::exception& error) {
    vkformer::cli::print_message(std::string("the command failed: ") + error.what() + ".");
    return vkformer::cli::kExitFailed;
  }
}
