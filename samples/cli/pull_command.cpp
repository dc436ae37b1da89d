// `vkformer pull`: downloads a model of a hub into the cache that vkformer shares with
// huggingface_hub.
#include <memory>

#include "command_line.h"
#include "hub_cache.h"
#include "hub_download.h"

namespace vkformer::cli {

namespace {

struct PullOptions {
  std::string name;
  std::string revision = "main";
};

int show_model(const CommonOptions& common, const HubName& name, const std::string& commit,
               const HubDownload* download) {
  const std::optional<std::string> model = model_in_snapshot(name, commit);
  const std::string folder =
      model ? *model : (hub_model_folder(name) / "snapshots" / commit).string();
  if (!common.json) {
    print_line(folder);
    return kExitOk;
  }
  Json json;
  json["model"] = name.repository();
  json["commit"] = commit;
  json["path"] = folder;
  if (download != nullptr) {
    json["files"] = Json::array();
    for (const HubDownload::File& file : download->files) {
      json["files"].push_back(
          {{"name", file.name}, {"bytes", file.bytes}, {"downloaded", file.downloaded}});
    }
  }
  print_json(json);
  return kExitOk;
}

int show_offline(const CommonOptions& common, const HubName& name, const std::string& revision) {
  const std::string commit = cached_commit(name, revision);
  if (commit.empty() || !model_in_snapshot(name, commit)) {
    return report({ErrorCode::kNotFound,
                   "[" + name.text() + "] at the revision " + revision + " is not in the cache " +
                       hub_cache_folder().string() +
                       ", and HF_HUB_OFFLINE forbids to download it; unset HF_HUB_OFFLINE."});
  }
  if (!common.quiet) print_message("HF_HUB_OFFLINE is set: what is in the cache was not compared.");
  return show_model(common, name, commit, nullptr);
}

int run_pull(const CommonOptions& common, const PullOptions& options) {
  const std::optional<HubName> name = parse_hub_name(options.name);
  if (!name) {
    return report_usage(
        "[" + options.name +
        "] is not a model of a hub; give OWNER/NAME, or OWNER/NAME:FILE for one file, "
        "such as HuggingFaceTB/SmolLM2-135M-Instruct.");
  }
  if (!is_inner_file_name(options.revision)) {
    return report_usage("[--revision] is '" + options.revision +
                        "', but must be a branch, a tag or a commit, such as main.");
  }
  if (hub_is_offline()) return show_offline(common, *name, options.revision);
  HubDownloadOptions settings;
  settings.name = *name;
  settings.revision = options.revision;
  settings.progress = common.quiet ? Progress::Show::kNever : Progress::Show::kAlways;
  settings.say = [&common](const std::string& note) {
    if (!common.quiet) print_message(note);
  };
  const Result<HubDownload> download = download_from_hub(settings);
  if (!download) return report(download.error());
  return show_model(common, *name, download->commit, &*download);
}

}  // namespace

void add_pull_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "pull", "Download a model of the Hugging Face hub into the cache; needs no device.");
  const auto options = std::make_shared<PullOptions>();
  command->add_option("NAME", options->name, "OWNER/NAME, or OWNER/NAME:FILE for one file of it")
      ->required();
  command->add_option("--revision", options->revision, "branch, tag or commit");
  add_output_options(*command, line.common);
  add_examples(*command,
               "  vkformer pull HuggingFaceTB/SmolLM2-135M-Instruct\n"
               "  vkformer generate HuggingFaceTB/SmolLM2-135M-Instruct \"Once upon a time\"\n"
               "  vkformer pull OWNER/NAME:model-q4_0.gguf\n"
               "\n"
               "Environment:\n"
               "  HF_TOKEN        access token for private and gated models\n"
               "  HF_ENDPOINT     the hub, https://huggingface.co if not set\n"
               "  HF_HUB_CACHE    the cache, hub in $HF_HOME or ~/.cache/huggingface if not set\n"
               "  HF_HUB_OFFLINE  if 1, nothing is downloaded\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_pull(line.common, *options); };
  });
}

}  // namespace vkformer::cli
