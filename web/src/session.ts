import { computed, effect, signal } from "@preact/signals";
import { api, type DatabaseInfo, type CurrentUser } from "./api";

/** Current user; null if unknown. */
export const currentUser = signal<CurrentUser | null>(null);
export const databases = signal<DatabaseInfo[]>([]);
/** Selected database, persisted across visits. */
export const database = signal<string>(localStorage.getItem("database") ?? "");
/** Whether the server requires sign-in. */
export const signInRequired = signal(false);
/** Whether the last request failed to reach the server. */
export const serverUnreachable = signal(false);
export const ready = signal(false);

export const dialect = computed(() => databases.value.find((one) => one.name === database.value)?.dialect ?? "");
/** Whether the user is an administrator; everyone is, if the server has no sign-in. */
export const isAdmin = computed(() => currentUser.value?.administers ?? true);

effect(() => {
  if (database.value) localStorage.setItem("database", database.value);
});

/** Loads the databases and the current user. */
export async function loadSession(): Promise<void> {
  try {
    databases.value = await api.databases();
    if (!databases.value.some((one) => one.name === database.value)) database.value = databases.value[0]?.name ?? "";
    const user = await api.currentUser().catch(() => null);
    // Reload if another user signed in, so that they do not see the previous user's data.
    if (currentUser.value && currentUser.value.user !== user?.user) location.reload();
    currentUser.value = user;
    serverUnreachable.value = false;
    signInRequired.value = false;
    ready.value = true;
  } catch {
    // `api` has already set `signInRequired` or `serverUnreachable`.
  }
}
