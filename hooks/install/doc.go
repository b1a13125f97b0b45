// Package install puts the guard into the user's own repository, for good, and takes it
// out again: hooks of its own that call superqode's helper, which refuses what programs do
// and lets a person at a terminal pass. The rules:
//
//  1. Where git looks into the common directory's hooks folder, a hook of ours
//     takes the place of the user's of that name, and the user's moves to a folder
//     next to it, at the same depth and under its own name, so that what it finds
//     by its own path is still found. The configuration is not touched.
//
//  2. Where core.hooksPath leads elsewhere (husky, a folder that is committed, one
//     for all repositories of the user) or the project uses husky, which will make it,
//     or the hooks folder is a link, no file there is touched: an include at the end of
//     the configuration makes core.hooksPath a folder of ours, whose hooks go on to the
//     one that the rest of the configuration says then.
//
//  3. Every file is linked aside or saved before it is replaced, what is about to
//     be done is written down first, and each step can be repeated: after a crash
//     install and uninstall both finish.
//
//  4. What somebody changed meanwhile is theirs: a hook that is no longer ours, or
//     a configuration that is no longer what we wrote, is left as it is, but for
//     our own lines.
//
//     in, err := install.Open(ctx, ".", os.Environ())
//     if err != nil {
//     return err
//     }
//     in.Helper = "/usr/local/bin/superqode-shim"
//     changed, err := in.Install(ctx, install.Options{})
package install
